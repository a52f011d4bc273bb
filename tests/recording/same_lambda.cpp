// Two threads run the same lambda, each of which is first seen at another place of it. Linked
// without symbols: see places.py.
#include <poll.h>
#include <thread>
#include <unistd.h>

int main()
{
    volatile int results[2] = {0, 0};
    std::thread threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = std::thread([i, &results] {
            if (i == 0)
                results[i] = usleep(20000);
            else
                results[i] = poll(nullptr, 0, 20);
        });
    for (std::thread &thread : threads)
        thread.join();
    return results[0] + results[1];
}
