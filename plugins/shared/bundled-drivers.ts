/** Drivers bundled with this build. build.ts substitutes the list of the command line. */
export const bundledDrivers: readonly string[] = [];
