/*
 * Waits through C++'s library, each in a function whose name the trace must have for its place. Nothing is inlined
 * into those, so that the program's own frame is theirs.
 */
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace {

std::mutex results_mu;
std::condition_variable ready;
bool is_ready;

template <class Unit> [[gnu::noinline]] void sleep_a_while(Unit time)
{
    std::this_thread::sleep_for(time);
}

[[gnu::noinline]] void take_turn(std::promise<void> &there)
{
    there.set_value();
    std::lock_guard<std::mutex> lock(results_mu);
}

[[gnu::noinline]] void wait_ready()
{
    std::unique_lock<std::mutex> lock(results_mu);
    ready.wait(lock, [] { return is_ready; });
}

struct Sleeper {
    std::vector<int> of;
    void operator()(int ms) const { sleep_a_while(std::chrono::milliseconds(ms)); }
};

} // namespace

int main()
{
    std::promise<void> there;
    std::thread waiter(wait_ready), sleeper(Sleeper{}, 30), turn;
    {
        std::lock_guard<std::mutex> lock(results_mu);
        turn = std::thread(take_turn, std::ref(there));
        there.get_future().wait();
        sleep_a_while(std::chrono::milliseconds(40));
        is_ready = true;
    }
    ready.notify_all();
    for (std::thread *thread : {&waiter, &sleeper, &turn})
        thread->join();
}
