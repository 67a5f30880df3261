import { readFileSync } from 'node:fs';
import { installFolder } from '../kit/install-folder.ts';

export const HOSTS = {
  'ai-sdk': 'AI SDK 6',
  'ai-sdk-7': 'AI SDK 7',
  'openai-agents': 'OpenAI Agents',
  langchain: 'LangChain',
  langgraph: 'LangGraph',
  genkit: 'Genkit',
  mastra: 'Mastra',
  'claude-agent': 'Claude Agent SDK',
  'claude-hooks': 'Claude Agent SDK, `approvalHooks`',
} as const;
export type HostName = keyof typeof HOSTS;
export const HOST_NAMES = Object.keys(HOSTS) as HostName[];

export const own = new URL('./', import.meta.url);

/** The versions that the suite runs in, as the docs name them. */
export function testedVersions(): string {
  const versionOf = (name: string, folder: URL) => {
    const { version } = JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, folder), 'utf8'));
    return String(version).split('.').slice(0, 2).join('.');
  };
  const others = Object.entries({
    'OpenAI Agents': '@openai/agents',
    LangChain: 'langchain',
    LangGraph: '@langchain/langgraph',
    Genkit: 'genkit',
    Mastra: '@mastra/core',
  }).map(([title, name]) => `${title} ${versionOf(name, own)}`);
  const aiSdks = `AI SDK ${versionOf('ai', new URL('../../', own))} and ${versionOf('ai-7', own)}`;
  const claude = `Claude Agent SDK ${versionOf('@anthropic-ai/claude-agent-sdk', own)}`;
  return `${[aiSdks, ...others].join(', ')} and ${claude}`;
}

/** The frameworks that are not among the dependencies of the checkout have a folder of their own. */
export const missing = installFolder(own, '@ai-sdk/mcp');

export function reasonToSkip(host: HostName): string | undefined {
  if (host === 'ai-sdk') return undefined;
  const isOld = ['ai-sdk-7', 'mastra'].includes(host) && Number.parseInt(process.versions.node, 10) < 22;
  return isOld ? 'its package asks for Node 22' : missing;
}
