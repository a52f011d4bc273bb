/* The width of the terminal that lines are shown on. */
#pragma once

/*
 * Returns the number of columns: the variable COLUMNS if it is set, else that of the terminal on
 * stdout; INT_MAX if stdout is not a terminal.
 */
int fit_columns(void);
