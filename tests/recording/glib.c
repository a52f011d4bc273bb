/* GLib threads that wait until the program is killed, each for the object it is named after. See
 * languages.py. */
#include <glib.h>

static GMutex log_mu, ready_mu;
static GCond ready;
static GAsyncQueue *jobs;
static int bit;

static gpointer wait_for_mutex(gpointer data)
{
    g_mutex_lock(&log_mu);
    return data;
}

static gpointer wait_for_condition(gpointer data)
{
    g_mutex_lock(&ready_mu);
    for (;;)
        g_cond_wait(&ready, &ready_mu);
    return data;
}

static gpointer wait_for_job(gpointer data)
{
    (void)g_async_queue_pop(jobs);
    return data;
}

static gpointer wait_for_bit(gpointer data)
{
    g_bit_lock(&bit, 0);
    return data;
}

int main(void)
{
    jobs = g_async_queue_new();
    g_mutex_lock(&log_mu);
    g_bit_lock(&bit, 0);
    (void)g_thread_new("condition", wait_for_condition, NULL);
    (void)g_thread_new("queue", wait_for_job, NULL);
    (void)g_thread_new("bit", wait_for_bit, NULL);
    (void)g_thread_join(g_thread_new("mutex", wait_for_mutex, NULL));
    return 0;
}
