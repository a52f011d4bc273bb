// Qt threads that wait until the program is killed, each for the object it is named after. See
// languages.py.
#include <functional>
#include <QtCore>

static QMutex log_mu, ready_mu;
static QReadWriteLock catalog;
static QWaitCondition ready;
static QSemaphore tickets;

class Waiting : public QThread
{
  public:
    Waiting(const char *name, std::function<void()> work) : work(work)
    {
        setObjectName(name);
        start();
    }
    void run() override
    {
        work();
    }

  private:
    std::function<void()> work;
};

int main()
{
    log_mu.lock();
    catalog.lockForWrite();
    Waiting mutex("mutex", [] { log_mu.lock(); });
    Waiting read("read", [] { catalog.lockForRead(); });
    Waiting semaphore("semaphore", [] { tickets.acquire(); });
    Waiting condition("condition", [] {
        ready_mu.lock();
        ready.wait(&ready_mu);
    });
    mutex.wait();
    return 0;
}
