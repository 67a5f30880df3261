import { API } from '../../core/kernel.ts';
import type { PluginFiles } from './package.ts';

export function channelFiles(name: string, identifier: string): PluginFiles {
  return {
    what: `asks for approval through ${name}`,
    use: `approvals: { channels: { ${name.includes('-') ? `'${name}'` : name}: { type: '${name}', url: 'https://${name}.example/' } } },`,
    source: source(name, identifier),
    test: suite(name, identifier),
  };
}

const source = (
  name: string,
  identifier: string,
): string => `import { type Channel, definePlugin, SvcError } from '@svc/sdk';

export interface Options {
  readonly url: string;
}

export function ${identifier}({ url }: Options): Channel {
  return {
    name: '${name}',
    /** One attempt: throws when the request did not arrive, a DeliveryFailed where it says when to try again. */
    async deliver(delivery, signal) {
      const body = \`To do in src/index.ts: deliver: \${delivery.requestId}, as its reader should see it\`;
      // Texts of a model deceive: \`displayed\` and \`displayedJson\` of '@svc/sdk' make them harmless for a person.
      await fetch(url, { method: 'POST', body, signal });
    },
    // What became of it: decided(record, signal) { … }
  };
}

/** What the configuration says, refused here and not at the first request. */
function checked({ url }: Readonly<Record<string, unknown>>): Options {
  if (typeof url === 'string' && URL.canParse(url)) return { url };
  throw new SvcError('config_invalid', 'The channel ${name} has no url.', { next: ['Give it one in approvals.channels.'] });
}

export default definePlugin({
  name: '${name}',
  api: ${API},
  apply: (kernel) => kernel.channels.register('${name}', (options) => ${identifier}(checked(options))),
});
`;

const suite = (name: string, identifier: string): string => `import { test } from 'node:test';
import { channelSuite, httpReceiver } from '@svc/sdk/testing';
import ${identifier} from '../src/index.ts';

channelSuite(test, {
  name: '${name}',
  plugin: ${identifier},
  type: '${name}',
  reader: 'person',
  // To do: what means something in the medium and must arrive as text: markup: ['<!channel>'],
  // To do: a stand-in that answers as the service does; this one takes every POST and shows the reader all of its body.
  receiver: () => httpReceiver({ options: (url) => ({ url }), shown: (body) => body }),
});
`;
