import { Option } from 'clipanion';
import type { Runtime } from '../../config/load/runtime.ts';
import type { Approvals } from '../../config/sdk/approvals.ts';
import type { People } from '../../config/sdk/people.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import { type CommandResult, SvcCommand } from '../base.ts';
import type { RequestSource } from './decide.ts';
import type { ServerSource } from './server-client.ts';

/** The process that runs the agents has an embedded store open for as long as it runs. */
const IN_USE = [
  'Decide in the process that has it open: through its callback (approvals.callbackBase), or svc.agents.signal in its code.',
  'To decide from the command line as well, use a database server for approvals.store.',
];

/** A command on the requests of the configured approval store. */
export abstract class ApprovalsCommand extends SvcCommand {
  abstract work(approvals: Approvals, runtime: Runtime): Promise<CommandResult | undefined>;

  async run(): Promise<CommandResult | undefined> {
    const runtime = await this.runtime();
    if (runtime.config.approvals?.store === undefined) {
      throw new SvcError('config_invalid', 'No store is configured for approvals.', {
        why: 'Without a store, requests are in the memory of the process that runs the agents, and no other process can read them.',
        next: ["Set approvals: { store: { database: '<tag>' } } in svc.config."],
        ...(runtime.file !== undefined && { where: runtime.file }),
      });
    }
    const [{ Approvals }, { closeApprovals }] = await Promise.all([
      import('../../config/sdk/approvals.ts'),
      import('../../config/sdk/approval-runtime.ts'),
    ]);
    try {
      return await this.work(new Approvals(async () => runtime), runtime);
    } catch (error) {
      throw isSvcError(error) && error.code === 'database_in_use' ? error.with({ next: IN_USE }) : error;
    } finally {
      await closeApprovals(runtime);
    }
  }
}

/** A command that works in the configured store, or on a server. */
abstract class ServedCommand extends ApprovalsCommand {
  override server = Option.String('--server', {
    description:
      'Uses the server at this URL, as the person of `svc login` or SVC_TOKEN, in place of the store. Needs no configuration.',
  });

  abstract workOnServer(source: ServerSource): Promise<CommandResult | undefined>;

  override async run(): Promise<CommandResult | undefined> {
    const { server } = this;
    if (server === undefined) return super.run();
    this.assertNoConfiguration();
    const { openServer } = await import('./server-client.ts');
    return this.workOnServer(await openServer(server, this.signal));
  }
}

/** A command that reads or decides requests, or on standing rules. */
export abstract class RequestsCommand extends ServedCommand {
  abstract workOn(source: RequestSource): Promise<CommandResult | undefined>;

  work(approvals: Approvals, runtime: Runtime): Promise<CommandResult | undefined> {
    const { product, env } = runtime;
    return this.workOn({ approvals, product, env, runtime });
  }

  workOnServer(source: ServerSource): Promise<CommandResult | undefined> {
    return this.workOn(source);
  }
}

/** A command on delegations: all of a store, or on a server those of one person. */
export abstract class DelegationsCommand extends ServedCommand {
  /** Without a runtime: on a server. */
  abstract workOn(
    people: Pick<People, 'delegate' | 'delegations' | 'revokeDelegation'>,
    runtime?: Runtime,
  ): Promise<CommandResult | undefined>;

  async work(_: Approvals, runtime: Runtime): Promise<CommandResult | undefined> {
    const { People } = await import('../../config/sdk/people.ts');
    return this.workOn(new People(async () => runtime), runtime);
  }

  workOnServer({ approvals }: ServerSource): Promise<CommandResult | undefined> {
    return this.workOn(approvals);
  }
}
