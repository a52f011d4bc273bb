/*
 * trail completion SHELL (not in the help): prints completions for bash, zsh or fish, made from the
 * option tables. The build writes them to files.
 */
#include <stdio.h>
#include <string.h>

#include "ui/cli.h"

static const struct option rows[] = {{0}};

static bool wants_file(const struct option *row)
{
    return row->argument &&
           (strncmp(row->argument, "FILE", 4) == 0 || strcmp(row->argument, "DIR") == 0);
}

/* Prints the first line of a help text, without characters that shells interpret and the
 * punctuation before the next line. */
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

/* MARK: bash */

/* The options of all commands that read traces, if it is one. */
static const struct option *shared_rows(const struct command *command)
{
    static const struct option none;
    return command->no_input ? &none : input_options;
}

static void bash_options(const struct option *row)
{
    for (; row->name; row++) {
        printf(" --%s%s", row->name, row->argument ? "=" : "");
        if (row->short_name)
            printf(" -%c", row->short_name);
    }
}

static void bash_values(const struct command *command, const struct option *row)
{
    char buf[OPTION_VALUES_SIZE];
    for (; row->name; row++) {
        if (!row->argument)
            continue;
        printf("        %s:--%s", command->name, row->name);
        if (row->short_name)
            printf("|%s:-%c", command->name, row->short_name);
        const char *values = option_values(row, buf);
        if (values)
            printf(") COMPREPLY=($(compgen -W '%s' -- \"$value\")) ;;\n", values);
        else if (wants_file(row))
            printf(") COMPREPLY=($(compgen -f -- \"$value\")) ;;\n");
        else
            printf(") COMPREPLY=() ;;\n");
    }
}

static void bash(void)
{
    printf("# bash completion for trail\n"
           "_trail()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command=${COMP_WORDS[1]} value=$word\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        COMPREPLY=($(compgen -W '");
    for (const struct command *const *c = commands; *c; c++)
        printf("%s ", (*c)->name);
    printf("--help --version' -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    # --opt=value arrives as three words: --opt, =, value\n"
           "    if [[ $word == '=' ]]; then\n"
           "        value=\n"
           "    elif [[ $before == '=' ]]; then\n"
           "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
           "    fi\n"
           "    case $command:$before in\n");
    for (const struct command *const *c = commands; *c; c++) {
        bash_values(*c, (*c)->options);
        bash_values(*c, shared_rows(*c));
    }
    printf("    *)\n"
           "        if [[ $word == -* ]]; then\n"
           "            case $command in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("            %s) COMPREPLY=($(compgen -W '", (*c)->name);
        bash_options((*c)->options);
        bash_options(shared_rows(*c));
        printf(" --help -h' -- \"$word\")) ;;\n");
    }
    printf("            esac\n"
           "            [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
           "        else\n"
           "            COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "        fi ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -F _trail trail\n");
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
    printf("        )\n"
           "        _describe command names ;;\n"
           "    rest)\n"
           "        case $words[1] in\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("        %s) _arguments \\\n", (*c)->name);
        for (const struct option *row = (*c)->options; row->name; row++)
            zsh_option(row);
        for (const struct option *row = shared_rows(*c); row->name; row++)
            zsh_option(row);
        printf("            '(-h --help)'{-h,--help}'[show help]' '*:file:_files' ;;\n");
    }
    printf("        esac ;;\n"
           "    esac\n"
           "}\n"
           "_trail \"$@\"\n");
}

/* MARK: fish */

static void fish_option(const struct command *command, const struct option *row)
{
    char buf[OPTION_VALUES_SIZE];
    const char *values = option_values(row, buf);
    printf("complete -c trail -n '__fish_seen_subcommand_from %s' -l %s", command->name, row->name);
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

static void fish(void)
{
    printf("# fish completion for trail\n");
    for (const struct command *const *c = commands; *c; c++) {
        printf("complete -c trail -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        put_help((*c)->summary);
        printf("'\n");
    }
    printf("complete -c trail -n __fish_use_subcommand -l version -d 'show the version'\n"
           "complete -c trail -l help -s h -d 'show help'\n");
    for (const struct command *const *c = commands; *c; c++) {
        for (const struct option *row = (*c)->options; row->name; row++)
            fish_option(*c, row);
        for (const struct option *row = shared_rows(*c); row->name; row++)
            fish_option(*c, row);
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
        return usage_error(command, "which shell? bash, zsh or fish");
    return EXIT_GOOD;
}

const struct command command_completion = {
    COMMAND_ROW(completion), .synopsis = "bash|zsh|fish", .options = rows, .run = run,
    .no_input = true,
};
