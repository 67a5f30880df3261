import * as assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder } from './kit/folder.ts';
import { test } from './kit/test.ts';

/** A plugin whose folder has a `@svc/sdk` of its own compiles in a project that has another one. */

const root = fileURLToPath(new URL('..', import.meta.url));

const PLUGIN = `import type { Broker, Channel, Dialect, Plugin, RecordStore, SealSink } from '@svc/sdk';
import type { RecordWrite, SqlServerStep } from '@svc/sdk/dialect';
declare const plugin: Plugin;
export default plugin;
export declare const abacus: Dialect<SqlServerStep>;
export declare const untyped: Dialect;
export declare const channel: Channel<string>;
export declare const broker: Broker;
export declare const write: RecordWrite;
export declare const records: RecordStore<{ readonly id: string }>;
export declare const sink: SealSink;
`;

const PROJECT = `import { type Broker, type Channel, type Dialect, defineConfig, definePlugin, type Plugin, type RecordStore, type SealSink, Svc } from '@svc/sdk';
import type { RecordWrite, SqlServerStep } from '@svc/sdk/dialect';
import { brokerSuite, channelSuite, dialectSuite, type BrokerUnderTest, type ChannelUnderTest, type DialectUnderTest, type TestFunction } from '@svc/sdk/testing';
import plugin, * as other from 'svc-dialect-abacus';
declare module '@svc/sdk' { interface Dialects { abacus: true } }
const config = defineConfig({ product: 'shop', env: 'dev', plugins: [plugin], databases: { main: { dialect: 'abacus', url: 'abacus:x' } } });
new Svc({ config });
export const values: [Plugin, Dialect<SqlServerStep>, Dialect, Channel<string>, Broker, RecordWrite, RecordStore<{ readonly id: string }>, SealSink] =
  [plugin, other.abacus, other.untyped, other.channel, other.broker, other.write, other.records, other.sink];
declare const [test, dialect, channel, broker]: [TestFunction, DialectUnderTest, ChannelUnderTest, BrokerUnderTest];
dialectSuite(test, { ...dialect, dialect: other.abacus });
channelSuite(test, { ...channel, plugin });
brokerSuite(test, { ...broker, plugin });
export default definePlugin({
  name: 'mine',
  apply(kernel) {
    kernel.dialects.register('abacus', other.abacus);
    kernel.dialects.register('untyped', other.untyped);
    kernel.channels.register('channel', () => other.channel);
    kernel.brokers.register('broker', () => other.broker);
    kernel.sealSinks.register('sink', () => other.sink);
    plugin.apply(kernel);
  },
});
`;

test(
  'a plugin with a copy of the package compiles in a project with another copy',
  async () => {
    const project = folder({
      'package.json': { type: 'module' },
      'tsconfig.json': {
        compilerOptions: {
          ...{ target: 'ES2023', module: 'NodeNext', types: ['node'], strict: true, exactOptionalPropertyTypes: true },
          ...{ noEmit: true, skipLibCheck: true },
        },
        include: ['*.ts'],
      },
      'project.ts': PROJECT,
      'node_modules/svc-dialect-abacus/package.json': { type: 'module', exports: { '.': { types: './index.d.ts' } } },
      'node_modules/svc-dialect-abacus/index.d.ts': PLUGIN,
    });
    const installed = join(project, 'node_modules');
    for (const name of readdirSync(join(root, 'node_modules')))
      if (name !== '@svc') symlinkSync(join(root, 'node_modules', name), join(installed, name));
    for (const place of [installed, join(installed, 'svc-dialect-abacus', 'node_modules')]) {
      const copy = join(place, '@svc', 'sdk');
      cpSync(join(root, 'dist'), join(copy, 'dist'), {
        recursive: true,
        filter: (path) => !/\.(?:js|cjs|map)$/.test(path),
      });
      cpSync(join(root, 'package.json'), join(copy, 'package.json'));
    }
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    const output = await new Promise<string>((settle) => {
      execFile(process.execPath, [tsc, '-p', project, '--pretty', 'false'], { cwd: project }, (error, stdout) =>
        settle(error ? stdout || error.message : ''),
      );
    });
    assert.equal(output, '');
  },
  { timeoutMs: 180_000 },
);
