import { approvalCases } from './approval-case.ts';
import { declareClaimCases } from './approval-claim-cases.ts';
import { declareDecisionCases } from './approval-decision-cases.ts';
import { declarePolicyCases } from './approval-policy-cases.ts';
import { declareRecordCases } from './approval-record-cases.ts';
import { declareTextCases } from './approval-text-cases.ts';
import { declareWaitingCases } from './approval-waiting-cases.ts';
import { suite, type TestFunction } from './suite.ts';
import type { StoreUnderTest } from './test-database.ts';

/**
 * Tests that approvals keep their guarantees on a store. Many cases are named after a fault found in other approval
 * gates.
 */
export function approvalSuite(test: TestFunction, store: StoreUnderTest): void {
  suite(test, store, (declare) => {
    const on = approvalCases(declare, store);
    declareDecisionCases(on, store);
    declareWaitingCases(on);
    declarePolicyCases(on);
    declareClaimCases(on, store);
    declareTextCases(on);
    declareRecordCases(on);
  });
}
