/*
 * Locks without a symbol, named after the place where each was first seen locked. Prints one line
 * per wait, in order: the lock's address, and the function. Later locks reuse the addresses.
 */
#include "answers.h"

#include <mutex>
#include <new>

static about_to_wait waiter;

/* Another thread calls the object's waits() while this one has the lock. */
template <class Object> static void *run_waits(void *object)
{
    static_cast<Object *>(object)->waits();
    return nullptr;
}

template <class Object> static void let_wait(Object *object, const void *lock, const char *function)
{
    pthread_t thread = start(run_waits<Object>, object);

    until_it_waits(&waiter);
    printf("%lx %s\n", (unsigned long)(uintptr_t)lock, function);
    object->unlock();
    pthread_join(thread, nullptr);
}

/* All classes have the same size, so that later objects reuse an address. */
struct Locked {
    char before[40];
    std::mutex mutex;

    IN_STACKS void waits()
    {
        about(&waiter);
        std::lock_guard<std::mutex> guard(mutex);
    }
    void unlock()
    {
        mutex.unlock();
    }
};

struct Queue : Locked {
    IN_STACKS void push(const char *function = "Queue::push")
    {
        mutex.lock();
        let_wait<Locked>(this, &mutex, function);
    }
    IN_STACKS void pop(const char *function = "Queue::pop")
    {
        mutex.lock();
        let_wait<Locked>(this, &mutex, function);
    }
};

struct Table : Locked {
    IN_STACKS void insert()
    {
        mutex.lock();
        let_wait<Locked>(this, &mutex, "Table::insert");
    }
};

/* C locks, which are destroyed explicitly. */
struct Plain {
    pthread_rwlock_t rwlock;
    pthread_mutex_t mutex;
    bool writes;

    IN_STACKS void waits()
    {
        about(&waiter);
        if (writes)
            pthread_rwlock_wrlock(&rwlock);
        else
            pthread_mutex_lock(&mutex);
        unlock();
    }
    void unlock()
    {
        if (writes)
            pthread_rwlock_unlock(&rwlock);
        else
            pthread_mutex_unlock(&mutex);
    }
    IN_STACKS void first(const char *function = "Plain::first")
    {
        pthread_mutex_lock(&mutex);
        let_wait(this, &mutex, function);
    }
    IN_STACKS void second()
    {
        pthread_mutex_lock(&mutex);
        let_wait(this, &mutex, "Plain::second");
    }
    IN_STACKS void reads()
    {
        pthread_rwlock_rdlock(&rwlock);
        let_wait(this, &rwlock, "Plain::reads");
    }
    IN_STACKS void writes_()
    {
        pthread_rwlock_wrlock(&rwlock);
        let_wait(this, &rwlock, "Plain::writes_");
    }
};

static void plain()
{
    auto *p = new Plain();

    pthread_mutex_init(&p->mutex, nullptr);
    p->first();
    pthread_mutex_destroy(&p->mutex);
    pthread_mutex_init(&p->mutex, nullptr);
    p->second();
    p->first("Plain::second");
    /* Without pthread_mutex_destroy(). */
    pthread_mutex_init(&p->mutex, nullptr);
    p->first();
    p->writes = true;
    p->reads();
    pthread_rwlock_destroy(&p->rwlock);
    pthread_rwlock_init(&p->rwlock, nullptr);
    p->writes_();
    delete p;
}

static void reused()
{
    Queue *one = new Queue, *two = new Queue;
    uintptr_t place = (uintptr_t)one;
    Table *table;

    one->push();
    two->pop();
    one->pop("Queue::push");
    two->push("Queue::pop");
    one->push();
    delete one;
    table = new Table;
    if ((uintptr_t)table != place)
        puts("elsewhere");
    else
        table->insert();
    delete table;
    delete two;
}

int main(int argc, char **)
{
    plain();
    if (argc > 1)
        reused();
    return 0;
}
