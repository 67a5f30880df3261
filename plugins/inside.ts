/** Drivers that are part of this script, whatever else is installed: build.ts has another list for the command line. */
export const inside: readonly string[] = [];
