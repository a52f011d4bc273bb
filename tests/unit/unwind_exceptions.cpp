/* Calls from where exceptions are handled. */
#include <functional>
#include <stdexcept>
#include <string>

extern "C" void call_in_catch(void (*what)());
extern "C" void call_in_destructor(void (*what)());
extern "C" void call_in_lambda(void (*what)());

namespace
{
struct on_exit {
    void (*what)();
    ~on_exit()
    {
        what();
    }
};

__attribute__((noinline)) void leave(void (*what)())
{
    /* NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): its destructor is what it is for. */
    on_exit guard = {what};
    std::string text(100, 'x');

    throw std::runtime_error(text);
}
} // namespace

void call_in_catch(void (*what)())
{
    try {
        throw std::runtime_error("for the test");
    } catch (const std::exception &) {
        what();
    }
}

void call_in_destructor(void (*what)())
{
    try {
        leave(what);
    } catch (const std::exception &) {
    }
}

void call_in_lambda(void (*what)())
{
    std::string text(100, 'x');
    std::function<void(int)> call = [&](int n) {
        std::string more = text + std::to_string(n);
        what();
    };

    call(1);
}
