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
} as const;
export type HostName = keyof typeof HOSTS;
export const HOST_NAMES = Object.keys(HOSTS) as HostName[];

export const own = new URL('./', import.meta.url);

/** The frameworks that are not among the dependencies of the checkout have a folder of their own. */
export const missing = installFolder(own, '@ai-sdk/mcp');

export function reasonToSkip(host: HostName): string | undefined {
  if (host === 'ai-sdk') return undefined;
  const isOld = ['ai-sdk-7', 'mastra'].includes(host) && Number.parseInt(process.versions.node, 10) < 22;
  return isOld ? 'it needs Node 22' : missing;
}
