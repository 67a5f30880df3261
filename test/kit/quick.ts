/** V8 would compile PGlite's WebAssembly a second time, for long use: that takes more of the machine than the tests do. */
export const QUICK = '--liftoff-only';
