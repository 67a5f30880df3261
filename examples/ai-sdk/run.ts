import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Svc } from '@svc/sdk';
import { resumeMessage, withApproval } from '@svc/sdk/ai-sdk';
import { generateText, type ModelMessage, stepCountIs, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';

/**
 * An agent of the AI SDK with three tools, of which `refund` waits for approval. Without an argument this program starts the agent
 * in a process of its own, kills it with SIGKILL while the refund waits, approves another amount, and starts it again: the
 * conversation continues, and the money is paid once. With the argument `agent` it is the agent.
 */

const script = fileURLToPath(import.meta.url);
const folder = join(dirname(script), '.svc');
const conversation = join(folder, 'conversation.json');
const payments = join(folder, 'payments.txt');

const openClient = () =>
  new Svc({
    product: 'shop',
    env: 'dev',
    config: {
      databases: { main: { dialect: 'postgresql', url: `pglite://${join(folder, 'main')}` } },
      approvals: { store: { database: 'main' } },
    },
  });

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

const lookUpOrder = tool({
  description: 'Reads an order.',
  inputSchema: z.object({ orderId: z.string() }),
  execute: async ({ orderId }) => ({ orderId, customer: 'ada@example.com', total: 20 }),
});

const refund = tool({
  description: 'Pays money back. Cannot be undone.',
  inputSchema: z.object({ orderId: z.string(), amount: z.number().positive() }),
  execute: async ({ orderId, amount }) => {
    appendFileSync(payments, `${amount} EUR for order ${orderId}\n`);
    return `Paid ${amount} EUR.`;
  },
});

const sendMail = tool({
  description: 'Sends a mail to a customer.',
  inputSchema: z.object({ to: z.string(), text: z.string() }),
  execute: async ({ to }) => `Sent to ${to}.`,
});

/** The turns of the model, so that the example runs without an API key. Any model of the AI SDK can take its place. */
const TURNS = [
  { toolName: 'lookUpOrder', input: { orderId: '1234' } },
  { toolName: 'refund', input: { orderId: '1234', amount: 20 } },
  { toolName: 'sendMail', input: { to: 'ada@example.com', text: 'We have paid you back.' } },
];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

const model = new MockLanguageModelV3({
  async doGenerate({ prompt }) {
    const results = prompt.flatMap(({ role, content }) => (role === 'tool' ? content : []));
    const last = results.at(-1);
    if (last?.type === 'tool-result') print(`the model reads ${JSON.stringify(last.output)}`);
    const turn = TURNS[results.length];
    if (turn === undefined) {
      const finishReason = { unified: 'stop', raw: 'stop' } as const;
      return { content: [{ type: 'text', text: 'Ada has her money back.' }], finishReason, usage, warnings: [] };
    }
    const { toolName, input } = turn;
    const call = { type: 'tool-call', toolCallId: `call-${results.length}`, toolName } as const;
    const finishReason = { unified: 'tool-calls', raw: 'tool-calls' } as const;
    return { content: [{ ...call, input: JSON.stringify(input) }], finishReason, usage, warnings: [] };
  },
});

/** Starts the conversation, or continues the one that is stored, wherever a process before this one ended. */
async function agent(): Promise<void> {
  const svc = openClient();
  const gate = svc.gate({ agentTag: 'support', humanInLoop: { enabled: true, approvalTimeout: 600_000 } });
  const gated = withApproval(
    gate,
    { refund },
    {
      executionId: 'order-1234',
      wait: 'suspend',
      onRequested: ({ requestId }) => print(`waits for approval: ${requestId}`),
    },
  );
  const tools = { lookUpOrder, sendMail, ...gated };
  let messages: ModelMessage[] = existsSync(conversation)
    ? JSON.parse(readFileSync(conversation, 'utf8'))
    : [{ role: 'user', content: 'Order 1234 never arrived.' }];
  for (;;) {
    // The message lets the AI SDK call the tool, which waits until its request is decided.
    const resume = resumeMessage(messages);
    if (resume.content.length > 0) messages = [...messages, resume];
    const { content, response, text } = await generateText({ model, tools, messages, stopWhen: stepCountIs(5) });
    messages = [...messages, ...response.messages];
    writeFileSync(`${conversation}.new`, JSON.stringify(messages));
    renameSync(`${conversation}.new`, conversation);
    if (content.some(({ type }) => type === 'tool-approval-request')) continue;
    print(`agent: ${text}`);
    break;
  }
  await svc.close();
}

/** The agent in a process of its own. `onLine` gets each line that it prints. */
async function runAgent(onLine: (line: string, kill: () => void) => void): Promise<void> {
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  const child = spawn(process.execPath, [...process.execArgv, script, 'agent'], { stdio: [...stdio] });
  const ended = once(child, 'close');
  createInterface({ input: child.stdout }).on('line', (line) => {
    print(`  ${line}`);
    onLine(line, () => child.kill('SIGKILL'));
  });
  const [status, signal] = (await ended) as [number | null, string | null];
  print(`— The process of the agent ended: ${signal ?? `exit status ${status}`}.`);
}

async function main(): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  print('— The agent starts in a process of its own:');
  let requestId = '';
  await runAgent((line, kill) => {
    const waiting = /^waits for approval: (\S+)/.exec(line);
    if (waiting === null) return;
    // At first the run is suspended; the second time, the conversation is stored and the call waits in the process.
    if (requestId === waiting[1]) kill();
    requestId = waiting[1] ?? '';
  });
  const svc = openClient();
  const payload = { requestId, modifiedParams: { amount: 15 } };
  await svc.approvals.signal({ signal: 'approve', payload }, { actor: 'ann' });
  await svc.close();
  print('— Ann approves, with 15 EUR in place of 20. The agent starts again:');
  await runAgent(() => {});
  print(`— Payments in ${relative(process.cwd(), payments)}:\n${readFileSync(payments, 'utf8').trimEnd()}`);
}

await (process.argv[2] === 'agent' ? agent() : main());
