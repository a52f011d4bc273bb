/* A plugin that contains libtrail-record as an archive, for unload.c. */
#include <stdbool.h>
#include <trail/record.h>

/* Links the archive's functions in; a plugin exports them unless it hides them. */
TRAIL_API bool plugin_records(void);
bool plugin_records(void)
{
    trail_log(0, "plugin", "records");
    return trail_flight_start(NULL, NULL) && trail_start_fd(NULL, 1, NULL) && trail_stop(NULL);
}
