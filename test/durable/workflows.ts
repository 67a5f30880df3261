import * as workflow from '@temporalio/workflow';
import { approvalStep } from '../../plugins/frameworks/temporal.ts';

export const payout = (amount: number) =>
  approvalStep(workflow, 'refund', { toolCallId: 'refund', parameters: { amount } });
