/* See view_server.h. */
#include "commands/view_server.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "serve/browser.h"
#include "ui/cli.h"

void view_server_block(sigset_t *signals)
{
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGINT);
    (void)sigaddset(signals, SIGTERM);
    (void)sigaddset(signals, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, signals, NULL);
}

static bool is_local(const char *host)
{
    return host[0] == '\0' || strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           strncmp(host, "127.", 4) == 0;
}

const char *view_server_host(const struct view_server *server)
{
    return server->host[0] ? server->host : "127.0.0.1";
}

int view_server_start(const struct view_server *server, struct http_options *options,
                      const char *word, struct http **http)
{
    trail_error err = no_error();
    options->host = server->host[0] ? server->host : NULL;
    options->port = server->port;
    *http = http_start(options, &err);
    if (!*http)
        return print_error(word, &err);
    if (!is_local(server->host))
        print_message("anyone who can reach %s and knows this address can read the trace",
                      server->host);
    return EXIT_GOOD;
}

/* Waits for a signal, or until there were no requests for the idle time. */
static void wait_for_end(const struct view_server *server, const struct http *http,
                         const sigset_t *signals)
{
    for (;;) {
        struct timespec pause = {.tv_nsec = 500000000};
        if (sigtimedwait(signals, NULL, &pause) > 0)
            return;
        int64_t last = http_last_request(http);
        if (!server->keep && last > 0 && now_ns() - last > server->idle_ns)
            return;
    }
}

void view_server_run(const struct view_server *server, const struct http *http, const char *url,
                     const sigset_t *signals)
{
    struct browser browser = {.page = ""};
    int reason;
    printf("%s\n", url);
    (void)fflush(stdout);
    if (!server->no_open && (reason = browser_open(&browser, url)) != 0)
        print_message("no browser was opened: %s", strerror(reason));
    wait_for_end(server, http, signals);
    browser_close(&browser);
}
