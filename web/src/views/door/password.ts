/** The fewest characters of a password. */
export const leastPassword = 10;
