import type { Approvals } from '../../config/approvals.ts';
import type { Runtime } from '../../config/runtime.ts';
import { SvcError } from '../../core/errors.ts';
import { type Answer, SvcCommand } from '../base.ts';

/** A command on the requests of the store that the configuration names. */
export abstract class ApprovalsCommand extends SvcCommand {
  abstract work(approvals: Approvals, runtime: Runtime): Promise<Answer | undefined>;

  async run(): Promise<Answer | undefined> {
    const runtime = await this.runtime();
    if (runtime.config.approvals?.store === undefined) {
      throw new SvcError('config_invalid', 'The configuration names no store for approvals.', {
        why: 'They are kept in the memory of the process that runs the agents: no other process can see them.',
        next: ["Set approvals: { store: { database: '<tag>' } } in svc.config."],
        ...(runtime.file !== undefined && { where: runtime.file }),
      });
    }
    const [{ Approvals }, { closeApprovals }] = await Promise.all([
      import('../../config/approvals.ts'),
      import('../../config/approval-runtime.ts'),
    ]);
    try {
      return await this.work(new Approvals(async () => runtime), runtime);
    } finally {
      await closeApprovals(runtime);
    }
  }
}
