// A migrator in a process of its own that can be told to die: `node migrator.ts <url> <file of migrations> [before:<n>]`.
import { readFileSync } from 'node:fs';
import type { Connection } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { migrate } from '../../core/migration/run.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { connectAdapter } from './adapter.ts';
import { definedInCode } from './defined.ts';

const [url = '', file = '', kill = ''] = process.argv.slice(2);
const at = Number(kill.split(':')[1]);
let calls = 0;

/** Dies by SIGKILL before the n-th call to the database: nothing of this process gets to say good-bye. */
function mortal<T extends object>(target: T): T {
  return new Proxy(target, {
    get(object, name, _receiver) {
      const member = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      return (...args: unknown[]) => {
        if (name === 'records') return mortal(member.apply(object, args));
        calls += 1;
        if (calls === at) process.kill(process.pid, 'SIGKILL');
        return member.apply(object, args);
      };
    },
  });
}

const adapter = await connectAdapter(postgresql, url, { busyTimeoutMs: 120_000 });
try {
  const connection: Connection = mortal(adapter.connection);
  const defined = JSON.parse(readFileSync(file, 'utf8')).map(definedInCode);
  process.stdout.write('ready\n');
  const report = await migrate({ ...adapter, connection }, defined, { allowDestructive: true });
  process.stdout.write(`applied ${report.migrations.length} calls ${calls}\n`);
} catch (error) {
  process.stderr.write(
    `${isSvcError(error) ? `${error.code}: ${error.message} ${error.why ?? ''} ${error.state ?? ''}` : String(error)}\n`,
  );
  process.exitCode = 1;
} finally {
  await adapter.connection.close();
}
