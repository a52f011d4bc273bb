/*
 * A program that is examined while it runs: for each line on stdin, two threads pass a ball back
 * and forth, and the program prints a line. When stdin ends, it starts a last thread that only does
 * this, and ends.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200, EXIT_CODE = 7 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int holder; /* 0: ping, 1: pong */
static int left[2];
static int over;

static void play(int mine)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!over && (holder != mine || left[mine] == 0))
            pthread_cond_wait(&moved, &lock);
        if (over)
            break;
        left[mine]--;
        holder = !mine;
        pthread_cond_broadcast(&moved);
    }
    pthread_mutex_unlock(&lock);
}

static void *ping(void *unused)
{
    play(0);
    return unused;
}

static void *pong(void *unused)
{
    play(1);
    return unused;
}

static void *last(void *unused)
{
    return unused;
}

static void one_game(void)
{
    pthread_mutex_lock(&lock);
    left[0] = left[1] = ROUNDS;
    pthread_cond_broadcast(&moved);
    while (left[0] > 0 || left[1] > 0)
        pthread_cond_wait(&moved, &lock);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    pthread_t threads[3];
    char line[16];
    if (pthread_create(&threads[0], NULL, ping, NULL) != 0 ||
        pthread_create(&threads[1], NULL, pong, NULL) != 0)
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        one_game();
        puts("played");
        fflush(stdout);
    }
    pthread_mutex_lock(&lock);
    over = 1;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (pthread_create(&threads[2], NULL, last, NULL) != 0 || pthread_join(threads[2], NULL) != 0)
        return 1;
    return EXIT_CODE;
}
