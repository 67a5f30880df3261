// MongoDB's protocol in front of DocumentDB: `node --import tsx main.ts --port <port> --postgresql <url>`.
import { parseArgs } from 'node:util';
import { Gateway } from './gateway.ts';

const { values } = parseArgs({
  options: { port: { type: 'string', default: '27017' }, postgresql: { type: 'string' } },
});
const gateway = new Gateway(values.postgresql ?? 'postgresql://postgres@127.0.0.1:5433/postgres');
try {
  const port = await gateway.listen(Number(values.port));
  process.stdout.write(`ready mongodb://127.0.0.1:${port}\n`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void gateway.close());
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
  await gateway.close().catch(() => undefined);
}
