/*
 * The life of a server of trail view: it is started, its address is printed and opened, and it ends
 * on a signal, or some time after the last request.
 */
#pragma once

#include <signal.h>

#include "serve/http.h"

struct view_server {
    char host[64]; /* "": the default */
    uint16_t port;
    bool has_port; /* one was given: 0 is any free one */
    bool no_open, keep;
    int64_t idle_ns;
};

/* Blocks the signals that end the process, for all threads that are started later. */
void view_server_block(sigset_t *signals);

/* Returns the host in addresses of the server. */
const char *view_server_host(const struct view_server *server);

/* Starts the server at this address; the other options are the caller's. `word` is for the message.
 * Returns an exit code. */
int view_server_start(const struct view_server *server, struct http_options *options,
                      const char *word, struct http **http);

/* Prints the address, opens it and waits for the end. The caller stops the server. */
void view_server_run(const struct view_server *server, const struct http *http, const char *url,
                     const sigset_t *signals);
