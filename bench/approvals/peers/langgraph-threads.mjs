import { tool } from '@langchain/core/tools';
import { Command } from '@langchain/langgraph';
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres';
import { z } from 'zod';
import { promptOf } from './script.mjs';

const threadOf = (run) => ({ configurable: { thread_id: run } });

/** Its runs are threads, whose checkpoints are in PostgreSQL. */
export class Threads {
  checkpointer;
  #effects;

  static async open({ url, effects }) {
    const threads = new Threads();
    threads.checkpointer = PostgresSaver.fromConnString(url);
    threads.#effects = effects;
    await threads.checkpointer.setup();
    return threads;
  }

  start(agent, run) {
    return agent.invoke({ messages: [{ role: 'user', content: promptOf(run) }] }, threadOf(run));
  }

  resume(agent, run, resume) {
    return this.#continue(agent, run, new Command({ resume }));
  }

  async #continue(agent, run, input) {
    const { messages, __interrupt__ } = (await agent.invoke(input, threadOf(run))) ?? {};
    return __interrupt__ ? 'waits' : `${messages?.at(-2)?.content ?? ''} ${messages?.at(-1)?.content ?? 'nothing'}`;
  }

  /** It lists checkpoints, not waiting runs: reads all checkpoints and inspects the newest of each thread. */
  async list() {
    const seen = new Set();
    let waiting = 0;
    for await (const { config, pendingWrites } of this.checkpointer.list({})) {
      if (seen.has(config.configurable.thread_id)) continue;
      seen.add(config.configurable.thread_id);
      if (pendingWrites?.some(([, channel]) => channel === '__interrupt__')) waiting += 1;
    }
    return waiting;
  }

  /** Changes the stored amount. */
  async tamper(run) {
    for (const table of ['checkpoint_blobs', 'checkpoint_writes']) {
      await this.#effects.query(
        `UPDATE ${table} SET blob = convert_to(replace(convert_from(blob, 'UTF8'), '"amount":42', '"amount":9999'), 'UTF8')
         WHERE thread_id = $1 AND type = 'json'`,
        [run],
      );
    }
    await this.#effects.query(
      `UPDATE checkpoints SET checkpoint = replace(checkpoint::text, '"amount": 42', '"amount": 9999')::jsonb WHERE thread_id = $1`,
      [run],
    );
  }

  /** A contender with an approval of its own. `resumeOf`: what resumes a run after a verdict. */
  system(agent, resumeOf) {
    return {
      start: (run) => this.start(agent, run),
      decide: (run, verdict) => this.resume(agent, run, resumeOf(run, verdict)),
      recover: (run) => this.#continue(agent, run, null),
      list: () => this.list(),
      tamper: (run) => this.tamper(run),
      close: () => this.close(),
    };
  }

  close() {
    return this.checkpointer.end();
  }
}

/** The tool of its contenders, with the parameters that it has once one is renamed. */
export function refundTool(renamed, execute) {
  const amountName = renamed ? 'sum' : 'amount';
  return tool(async ({ orderId, ...rest }) => execute(orderId, rest[amountName]), {
    name: 'refund',
    description: 'Pays.',
    schema: z.object({ orderId: z.string(), [amountName]: z.number() }),
  });
}

/** The tool that pays without asking. */
export const payingTool = (renamed, effects) =>
  refundTool(renamed, async (orderId, amount) => JSON.stringify(await effects.pay(orderId, amount)));
