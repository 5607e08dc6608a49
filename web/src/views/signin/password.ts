/** The minimum number of characters of a password. */
export const leastPassword = 10;
