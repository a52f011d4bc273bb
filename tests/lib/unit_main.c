/* Main of the programs that have none of their own. It is in a file of its own because the linker
 * takes whole files from a library. */
#include "unit.h"

int main(void)
{
    return run_all_tests(NULL, NULL);
}
