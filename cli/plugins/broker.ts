import { API } from '../../core/kernel.ts';
import type { PluginFiles } from './package.ts';

export function brokerFiles(name: string, identifier: string): PluginFiles {
  return {
    what: `carries requests and decisions over ${name}`,
    use: `brokers: { bus: { type: '${name}', url: '${name}://127.0.0.1' } },`,
    source: source(name, identifier),
    test: suite(name, identifier),
  };
}

const source = (name: string, identifier: string): string => `import { type Broker, definePlugin } from '@svc/sdk';

export interface Options {
  readonly url: string;
}

/** What is not written yet; the suite in test/ ends with it too. */
function todo(what: string): never {
  throw new Error(\`To do in src/index.ts: \${what}\`);
}

export function ${identifier}({ url }: Options): Broker {
  const scheme = url.split('://', 1)[0];
  return {
    /** Connects when it is first used. Resolves when the broker has the event for good. */
    async publish(event, _signal) {
      todo(\`publish: \${event.name} over \${scheme}, confirmed by the broker\`);
    },
    /** Hands on each message of a queue; puts aside as a dead letter what \`take\` throws on. */
    async consume(queue, _take) {
      return todo(\`consume: \${queue}, until what this gives back is called\`);
    },
    async close() {
      // Nothing is open yet.
    },
  };
}

export default definePlugin({
  name: '${name}',
  api: ${API},
  apply: (kernel) => kernel.brokers.register('${name}', (options) => ${identifier}(options as unknown as Options)),
});
`;

const suite = (name: string, identifier: string): string => `import { test } from 'node:test';
import { type BrokerUnderTest, brokerSuite } from '@svc/sdk/testing';
import ${identifier} from '../src/index.ts';

/** Everybody else who uses the server, with a client of their own. */
const outside: BrokerUnderTest['outside'] = async () => {
  throw new Error('To do in test/suite.test.ts: outside: listen, send and takeDead with the client of ${name}');
};

brokerSuite(test, {
  name: '${name}',
  plugin: ${identifier},
  type: '${name}',
  // To do: where a real server answers.
  server: { host: '127.0.0.1', port: 4222 },
  options: (host, port) => ({ url: \`${name}://\${host}:\${port}\` }),
  outside,
});
`;
