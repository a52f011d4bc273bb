/* A library that is built twice, with different numbers of bytes (FRAME) in a function's frame. */
void call_back(void (*what)(void));

void call_back(void (*what)(void))
{
    char bytes[FRAME];
    __asm__ volatile("" ::"r"(bytes) : "memory");
    what();
    __asm__ volatile("" ::"r"(bytes) : "memory");
}
