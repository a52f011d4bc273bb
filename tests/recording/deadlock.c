/* Two threads take two mutexes in opposite orders: a deadlock, in each run. With an argument main waits for them. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t a_mu = PTHREAD_MUTEX_INITIALIZER, b_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static void *forward(void *unused)
{
    pthread_mutex_lock(&a_mu);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&b_mu);
    return unused;
}

static void *backward(void *unused)
{
    pthread_mutex_lock(&b_mu);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a_mu);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    (void)argv;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&threads[0], NULL, forward, NULL);
    pthread_create(&threads[1], NULL, backward, NULL);
    if (argc > 1)
        pthread_join(threads[0], NULL);
    usleep(300000);
    _exit(0);
}
