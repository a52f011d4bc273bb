/* How wide lines may be where they are shown. */
#ifndef TRAIL_UI_FIT_H
#define TRAIL_UI_FIT_H

/*
 * Returns the number of columns: of the variable COLUMNS if it is set, else of the terminal that
 * stdout is; INT_MAX if it is none.
 */
int fit_columns(void);

#endif
