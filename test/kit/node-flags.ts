/** Keeps V8 from compiling PGlite's WebAssembly a second time with optimizations, which costs more than the tests. */
export const LIFTOFF_ONLY = '--liftoff-only';
