// Preloaded into a process with --expose-gc: on SIGUSR2 it collects garbage and writes what is left, in bytes, to a file.
const { renameSync, writeFileSync } = require('node:fs');

const file = process.env.SVC_TEST_HEAP;
process.on('SIGUSR2', () => {
  global.gc();
  global.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  writeFileSync(`${file}.new`, JSON.stringify({ live: heapUsed + external, rss }));
  renameSync(`${file}.new`, file);
});
