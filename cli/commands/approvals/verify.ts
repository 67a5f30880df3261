import { readFile } from 'node:fs/promises';
import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../config/load/runtime.ts';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import type { AuditCheck } from '../../../core/approval/audit.ts';
import type { AuditProof } from '../../../core/approval/seal/proof.ts';
import type { SealCheck } from '../../../core/approval/seal/sealed-audit.ts';
import { inlineJson } from '../../../core/display/json.ts';
import { displayText } from '../../../core/display/text.ts';
import { isSvcError, SvcError, systemErrorCode } from '../../../core/errors.ts';
import { tryParseJson } from '../../../core/json.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import type { CommandResult } from '../../base.ts';
import { parseDate } from '../../flag-values.ts';
import { plural } from '../../output.ts';

export default class ApprovalsVerify extends ApprovalsCommand {
  static override paths = [['approvals', 'verify']];
  static override usage = Command.Usage({
    description: 'Checks that no stored event of a request was changed, removed, added or moved.',
    details:
      'Each event has the hash of the one before it and of the request as it was then. Somebody who writes to the database and computes ' +
      'the hashes again is found by the seals of approvals.seals only.',
    examples: [
      ['All requests of a year', 'svc approvals verify --since 2026-01-01 --before 2027-01-01'],
      ['Seals that were kept elsewhere', 'svc approvals verify --seals seals.jsonl --key seal.pub'],
      ['A proof, without the database', 'svc approvals verify --proof proof.json --key seal.pub'],
    ],
  });

  since = Option.String('--since', { description: 'Requests created at or after this date or time.' });
  before = Option.String('--before', { description: 'Requests created before this date or time.' });
  seals = Option.Array('--seals', [], {
    description: 'A file with seals to compare with; repeat it for several, in order. Default: those of a sink.',
  });
  keys = Option.Array('--key', [], {
    description: 'A file with the public key of the seals; repeat it for several. Default: those of the configuration.',
  });
  proof = Option.String('--proof', { description: 'Verifies this file of svc approvals prove in place of the store.' });

  override async run(): Promise<CommandResult | undefined> {
    return this.proof === undefined ? super.run() : this.#verifyProof(this.proof);
  }

  async work(approvals: Approvals): Promise<CommandResult> {
    const since = parseDate('--since', this.since);
    const before = parseDate('--before', this.before);
    const check = await approvals.verify({
      ...(since && { since }),
      ...(before && { before }),
      sealFiles: this.seals,
      publicKeys: await this.#publicKeys(),
    });
    const { checked, broken, seals } = check;
    const count = plural(checked, 'request');
    const problems = [
      ...(seals?.problems ?? []),
      ...broken.flatMap(({ requestId, problems: texts }) => texts.map((text) => `${requestId}: ${text}`)),
    ];
    for (const text of problems) this.print(displayText(text));
    if (problems.length === 0) this.print(`${count} checked: every event fits.`);
    if (seals) for (const text of sealLines(seals)) this.print(displayText(text));
    if (problems.length > 0) throw brokenError(check);
    return { data: { ...check } };
  }

  async #verifyProof(file: string): Promise<CommandResult> {
    const given = await this.#publicKeys();
    const [{ isProof, proofProblems }, { sealPublicKeys }] = await Promise.all([
      import('../../../core/approval/seal/proof.ts'),
      import('../../../config/sdk/seals.ts'),
    ]);
    // With a key, no configuration is needed.
    const keys = sealPublicKeys(given.length > 0 ? { config: {} } : await this.#configured(), given);
    const proof: unknown = tryParseJson(await readText('--proof', file));
    if (!isProof(proof)) {
      throw new SvcError('file_invalid', 'The file is not a proof.', {
        why: 'It does not have the form of what svc approvals prove prints.',
        state: 'Nothing was verified.',
        where: file,
      });
    }
    const problems = proofProblems(proof, keys);
    const { requestId } = proof.sealed;
    if (problems.length > 0) {
      for (const text of problems) this.print(displayText(text));
      throw new SvcError('audit_broken', `The proof of ${requestId} does not hold.`, {
        why: problems.join(' '),
        state: 'Nothing was changed by this command.',
        next: ['Ask for the proof again, and for the public key in another way.'],
        details: { requestId, problems },
        where: file,
      });
    }
    for (const text of proofLines(proof)) this.print(displayText(text));
    const { events, seal, call } = proof;
    const { product, env, at } = seal;
    return { data: { requestId, product, env, seal: seal.seal, sealedAt: at, ...(call && { call }), events } };
  }

  async #configured(): Promise<Pick<Runtime, 'config'>> {
    return this.runtime().catch((error: unknown) => {
      // Who has the proof has no configuration: a key is what they need.
      if (isSvcError(error) && error.code === 'config_missing' && this.configFile === undefined) return { config: {} };
      throw error;
    });
  }

  async #publicKeys(): Promise<readonly string[]> {
    return Promise.all(this.keys.map((file) => readText('--key', file)));
  }
}

function brokenError({ checked, broken, seals }: AuditCheck): SvcError {
  const isSealBroken = seals !== undefined && seals.problems.length > 0;
  const message =
    broken.length === 0
      ? 'The seals are missing or were changed.'
      : `${plural(broken.length, 'request')} ${broken.length === 1 ? 'was' : 'were'} changed in the database, or removed from it${isSealBroken ? ', and so were the seals' : ''}.`;
  return new SvcError('audit_broken', message, {
    why: seals
      ? 'Events do not fit together, do not match their request, or are not what was sealed.'
      : 'Their events do not fit together, or do not match the request.',
    state: 'Nothing was changed by this command.',
    next: ['svc approvals show <requestId>    shows what is stored now'],
    details: { checked, broken, ...(seals && { seals }) },
  });
}

function sealLines({ from, seals, last, sealedAt, removed, unsealed }: SealCheck): string[] {
  if (last === 0) return [`Nothing is sealed yet in ${from}: only hashes were compared.`];
  const lines = [
    `Compared with ${plural(seals, 'seal')} of ${from}, up to seal ${last}${sealedAt === undefined ? '' : `. All that was stored until ${sealedAt} is sealed`}.`,
  ];
  if (removed > 0) lines.push(`${plural(removed, 'request')} removed by svc approvals prune.`);
  if (unsealed > 0) lines.push(`${plural(unsealed, 'request')} with events that are not sealed yet.`);
  return lines;
}

function proofLines({ sealed, seal, events, call }: AuditProof): string[] {
  const { product, env, at } = seal;
  return [
    `${sealed.requestId} of ${product} (${env}) is as it was sealed at ${at}, in seal ${seal.seal}.`,
    ...(call ? [`${call.tool} ${inlineJson(call.parameters)}`] : []),
    ...events.map(({ at: moment, type, by, as, principal }) => {
      const who = by === undefined ? '' : ` by ${by}`;
      const verified = principal === undefined ? '' : ` (verified by ${principal.verifiedBy})`;
      return `${moment} ${type}${as === undefined ? '' : ` (${as})`}${who}${verified}`;
    }),
  ];
}

async function readText(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new SvcError('file_invalid', `The file of ${flag} cannot be read.`, {
      why: systemErrorCode(error) ?? String(error),
      state: 'Nothing was verified.',
      where: file,
    });
  }
}
