/*
 * trail completion SHELL (not in the help): prints completions for bash, zsh or fish, made from the
 * option tables. The build writes them to files.
 */
#include <stdio.h>
#include <string.h>

#include "sql/queries.h"
#include "ui/cli.h"

static const struct option rows[] = {{0}};

static bool wants_file(const struct option *row)
{
    return row->argument &&
           (strncmp(row->argument, "FILE", 4) == 0 || strcmp(row->argument, "DIR") == 0);
}

/* Prints the first line of a help text, without characters that shells interpret or trailing
 * punctuation. */
static void put_help(const char *help)
{
    size_t length = strcspn(help, "\n");
    if (help[length] == '\n')
        while (length > 0 && strchr(",:;", help[length - 1]))
            length--;
    for (size_t i = 0; i < length; i++)
        if (!strchr("'[]", help[i]))
            putchar(help[i]);
}

/* How each shell completes the words, other than options, of a command; "<*>" stands for the
 * queries of trail sql. The last row is for all other commands. */
static const struct words {
    const char *command, *bash, *zsh, *fish;
} words[] = {
    {"sql",
     "if [[ $value == [@.]* && $value != */* ]]; then _trail_words '<*>'; else _trail_files; fi",
     "'*:trace or query:_trail_queries'", "-k -a '<*>'"},
    {"record", "_trail_files", "'(-)1:program:_command_names -e' '*::arguments:_normal'",
     "-x -a '(__trail_program)'"},
    {"stuck", "_trail_words \"$(cd /proc && echo [0-9]*)\"", "'*:process:_pids'",
     "-x -a '(__fish_complete_pids)'"},
    {"completion", "_trail_words 'bash zsh fish'", "'*:shell:(bash zsh fish)'",
     "-x -a 'bash zsh fish'"},
    {NULL, "_trail_files", "'*:file:_files'", "-F"},
};

static const struct words *words_of(const struct command *command)
{
    const struct words *row = words;
    while (row->command && strcmp(row->command, command->name) != 0)
        row++;
    return row;
}

static void put_commands(void)
{
    for (const struct command *const *c = commands; *c; c++)
        printf("%s ", (*c)->name);
    printf("help ");
}

static void put_queries(void)
{
    for (const struct sql_named *query = sql_queries; query->name; query++)
        printf("@%s ", query->name);
    printf(".tables .schema .queries .show ");
}

static void put_words(const char *text)
{
    const char *queries = strstr(text, "<*>");
    if (!queries) {
        fputs(text, stdout);
        return;
    }
    printf("%.*s", (int)(queries - text), text);
    put_queries();
    fputs(queries + 3, stdout);
}

/* MARK: bash */

static void bash_options(const struct command *command)
{
    OPTION_EACH(row, command) {
        printf(" --%s%s", row->name, row->argument ? "=" : "");
        if (row->short_name)
            printf(" -%c", row->short_name);
    }
}

static void bash_values(const struct command *command)
{
    char buf[OPTION_VALUES_SIZE];
    OPTION_EACH(row, command) {
        if (!row->argument)
            continue;
        printf("        %s:--%s", command->name, row->name);
        if (row->short_name)
            printf("|%s:-%c", command->name, row->short_name);
        const char *values = option_values(row, buf);
        if (values)
            printf(") _trail_words '%s' ;;\n", values);
        else if (wants_file(row))
            printf(") _trail_files ;;\n");
        else
            printf(") ;;\n");
    }
}

/*
 * The words are split here, at blanks: whether "=" and "@" are words of their own in COMP_WORDS
 * depends on COMP_WORDBREAKS. Answers are whole words until the end, where the part that the shell
 * keeps is cut off.
 */
static const char bash_begin[] =
    "# bash completion for trail\n"
    "_trail_words()\n{\n"
    "    COMPREPLY+=($(compgen -P \"$prefix\" -W \"$1\" -- \"$value\"))\n"
    "}\n"
    "_trail_files()\n{\n"
    "    local IFS=$'\\n' i\n"
    "    if [[ -z $prefix || $breaks == *=* ]]; then\n"
    "        COMPREPLY+=($(compgen -P \"$prefix\" -f -- \"$value\"))\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        return\n"
    "    fi\n"
    "    # The shell does not know that there is a file behind the prefix.\n"
    "    for i in $(compgen -f -- \"$value\"); do\n"
    "        [[ -d $i ]] && i+=/ && compopt -o nospace 2>/dev/null\n"
    "        COMPREPLY+=(\"$prefix$(printf %q \"$i\")\")\n"
    "    done\n"
    "}\n"
    "# Sets `program` to the index of the program's name in `words`, if it is there.\n"
    "_trail_program()\n{\n"
    "    local i\n"
    "    for ((i = 2; i < ${#words[@]}; i++)); do\n"
    "        case ${words[i]} in\n"
    "        --) program=$((i + 1)); return ;;\n"
    "        --*=*) ;;\n";

static void bash_program_options(const struct option *row)
{
    for (; row->name; row++) {
        if (!row->argument)
            continue;
        printf("        --%s", row->name);
        if (row->short_name)
            printf("|-%c", row->short_name);
        printf(") i=$((i + 1)) ;;\n");
    }
}

static const char bash_middle[] =
    "        -*) ;;\n"
    "        *) program=$i; return ;;\n"
    "        esac\n"
    "    done\n"
    "}\n"
    "_trail()\n{\n"
    "    local line=${COMP_LINE:0:COMP_POINT} words=() program=0 prefix= i\n"
    "    local breaks=${COMP_WORDBREAKS//@} # the shell completes a word with its @\n"
    "    read -a words <<< \"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=('')\n"
    "    local last=$((${#words[@]} - 1))\n"
    "    local word=${words[last]} command=${words[1]} value=${words[last]}\n"
    "    COMPREPLY=()\n"
    "    [[ $command == record ]] && _trail_program\n"
    "    if ((last == 1)); then\n"
    "        _trail_words \"$_trail_commands --help --version\"\n"
    "    elif ((program > 0 && last == program)); then\n"
    "        COMPREPLY=($(compgen -c -- \"$value\"))\n"
    "        [[ $value == */* ]] && _trail_files\n"
    "    elif ((program > 0 && last > program)); then\n"
    "        for ((i = 2; i < COMP_CWORD; i++)); do\n"
    "            [[ ${COMP_WORDS[i]} == \"${words[program]}\" ]] && break\n"
    "        done\n"
    "        if declare -F _command_offset >/dev/null; then\n"
    "            _command_offset $i\n"
    "            return\n"
    "        fi\n"
    "        _trail_files\n"
    "    elif [[ $word == --*=* ]]; then\n"
    "        prefix=${word%%=*}=\n"
    "        value=${word#*=}\n"
    "        _trail_value \"$command:${word%%=*}\"\n"
    "    elif ! _trail_value \"$command:${words[last-1]}\"; then\n"
    "        if [[ $word == -* ]]; then\n"
    "            _trail_option\n"
    "            [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace "
    "2>/dev/null\n"
    "        else\n"
    "            _trail_word\n"
    "        fi\n"
    "    fi\n"
    "    local kept=${word%\"${word##*[$breaks]}\"}\n"
    "    COMPREPLY=(\"${COMPREPLY[@]#\"$kept\"}\")\n"
    "}\n";

static void bash(void)
{
    fputs(bash_begin, stdout);
    bash_program_options(command_record.options);
    fputs(bash_middle, stdout);
    printf("_trail_commands='");
    put_commands();
    printf("'\n# Completes the value of an option; fails if it has none.\n"
           "_trail_value()\n{\n"
           "    case $1 in\n");
    for (const struct command *const *c = commands; *c; c++)
        bash_values(*c);
    printf("        *) return 1 ;;\n    esac\n}\n_trail_option()\n{\n    case $command in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s) _trail_words '", (*c)->name);
        bash_options(*c);
        printf(" --help -h' ;;\n");
    }
    printf("    esac\n}\n_trail_word()\n{\n    case $command in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s) ", (*c)->name);
        put_words(words_of(*c)->bash);
        printf(" ;;\n");
    }
    printf("        help) _trail_words \"$_trail_commands\" ;;\n");
    printf("    esac\n}\ncomplete -F _trail trail\n");
}

/* MARK: zsh */

static void zsh_option(const struct option *row)
{
    char buf[OPTION_VALUES_SIZE];
    const char *values = option_values(row, buf);
    printf("            '");
    if (row->short_name)
        printf("(-%c --%s)'{-%c%s,--%s%s}'[", row->short_name, row->name, row->short_name,
               row->argument ? "+" : "", row->name, row->argument ? "=" : "");
    else
        printf("--%s%s[", row->name, row->argument ? "=" : "");
    put_help(row->help);
    printf("]");
    if (values)
        printf(":%s:(%s)", row->argument, values);
    else if (wants_file(row))
        printf(":%s:_files", row->argument);
    else if (row->argument)
        printf(":%s: ", row->argument);
    printf("' \\\n");
}

static void zsh(void)
{
    printf("#compdef trail\n"
           "_trail_queries()\n{\n    compadd -- ");
    put_queries();
    printf("\n    _files\n}\n"
           "_trail()\n{\n"
           "    local context state state_descr line\n"
           "    typeset -A opt_args\n"
           "    _arguments -C '1: :->command' '*:: :->rest'\n"
           "    case $state in\n"
           "    command)\n"
           "        local -a names=(\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("            '%s:", (*c)->name);
        put_help((*c)->summary);
        printf("'\n");
    }
    printf("            'help:show help'\n"
           "        )\n"
           "        _describe command names ;;\n"
           "    rest)\n"
           "        case $words[1] in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s) _arguments -S \\\n", (*c)->name);
        OPTION_EACH(row, *c)
            zsh_option(row);
        printf("            '(-h --help)'{-h,--help}'[show help]' ");
        put_words(words_of(*c)->zsh);
        printf(" ;;\n");
    }
    printf("        help) _arguments '1:command:(");
    put_commands();
    printf(")' ;;\n"
           "        esac ;;\n"
           "    esac\n"
           "}\n"
           "_trail \"$@\"\n");
}

/* MARK: fish */

static void fish_option(const struct command *command, const struct option *row)
{
    char buf[OPTION_VALUES_SIZE];
    const char *values = option_values(row, buf);
    printf("complete -c trail -n '__trail_command %s' -l %s", command->name, row->name);
    if (row->short_name)
        printf(" -s %c", row->short_name);
    if (values)
        printf(" -x -a '%s'", values);
    else if (wants_file(row))
        printf(" -r -F");
    else if (row->argument)
        printf(" -x");
    printf(" -d '");
    put_help(row->help);
    printf("'\n");
}

/* Completes the command line of a program to be recorded as if it stood without trail record. */
static void fish_functions(void)
{
    printf("# fish completion for trail\n"
           "function __trail_command\n"
           "    set -l words (commandline -opc)\n"
           "    test \"$words[2]\" = $argv[1]\n"
           "end\n"
           "function __trail_program\n"
           "    set -l words (commandline -opc) (commandline -ct)\n"
           "    set -l i 3\n"
           "    while test $i -lt (count $words)\n"
           "        switch $words[$i]\n"
           "            case --\n"
           "                set i (math $i + 1)\n"
           "                break\n"
           "            case '--*=*'\n"
           "            case");
    for (const struct option *row = command_record.options; row->name; row++) {
        if (row->argument)
            printf(" --%s", row->name);
        if (row->argument && row->short_name)
            printf(" -%c", row->short_name);
    }
    printf("\n"
           "                set i (math $i + 1)\n"
           "            case '-*'\n"
           "            case '*'\n"
           "                break\n"
           "        end\n"
           "        set i (math $i + 1)\n"
           "    end\n"
           "    complete -C (string join ' ' -- (string escape -- $words[$i..-2]) $words[-1])\n"
           "end\n");
}

static void fish(void)
{
    fish_functions();
    for (const struct command *const *c = commands; *c; c++) {
        printf("complete -c trail -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        put_help((*c)->summary);
        printf("'\n");
    }
    printf("complete -c trail -n __fish_use_subcommand -f -a help -d 'show help'\n"
           "complete -c trail -n '__trail_command help' -x -a '");
    put_commands();
    printf("'\n"
           "complete -c trail -n __fish_use_subcommand -l version -d 'show the version'\n"
           "complete -c trail -l help -s h -d 'show help'\n");
    for (const struct command *const *c = commands; *c; c++) {
        OPTION_EACH(row, *c)
            fish_option(*c, row);
        printf("complete -c trail -n '__trail_command %s' ", (*c)->name);
        put_words(words_of(*c)->fish);
        printf("\n");
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    const char *shell = argc == 1 ? argv[0] : "";
    if (strcmp(shell, "bash") == 0)
        bash();
    else if (strcmp(shell, "zsh") == 0)
        zsh();
    else if (strcmp(shell, "fish") == 0)
        fish();
    else
        return usage_error(command, "no shell given: bash, zsh or fish");
    return EXIT_GOOD;
}

const struct command command_completion = {
    COMMAND_ROW(completion),
    .synopsis = "bash|zsh|fish",
    .no_input = true,
};
