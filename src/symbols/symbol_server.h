/* The process that reads programs: answers questions (message.h) by elf_symbols.h. */
#ifndef TRAIL_SYMBOLS_SYMBOL_SERVER_H
#define TRAIL_SYMBOLS_SYMBOL_SERVER_H

/* Answers questions from `fd` until its other end is closed. */
void symbol_server_run(int fd);

#endif
