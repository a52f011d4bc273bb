/* The process that reads programs: answers questions (message.h) by elf_symbols.h. */
#pragma once

/* Answers questions from `fd` until its other end is closed. */
void symbol_server_run(int fd);
