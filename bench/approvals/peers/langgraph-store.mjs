/** It lists checkpoints, not waiting runs: reads all checkpoints and inspects the newest of each thread. */
export async function listWaiting(checkpointer) {
  const seen = new Set();
  let waiting = 0;
  for await (const { config, pendingWrites } of checkpointer.list({})) {
    if (seen.has(config.configurable.thread_id)) continue;
    seen.add(config.configurable.thread_id);
    if (pendingWrites?.some(([, channel]) => channel === '__interrupt__')) waiting += 1;
  }
  return waiting;
}

/** Changes the stored amount. */
export async function tamper(effects, run) {
  for (const table of ['checkpoint_blobs', 'checkpoint_writes']) {
    await effects.query(
      `UPDATE ${table} SET blob = convert_to(replace(convert_from(blob, 'UTF8'), '"amount":42', '"amount":9999'), 'UTF8')
       WHERE thread_id = $1 AND type = 'json'`,
      [run],
    );
  }
  await effects.query(
    `UPDATE checkpoints SET checkpoint = replace(checkpoint::text, '"amount": 42', '"amount": 9999')::jsonb WHERE thread_id = $1`,
    [run],
  );
}
