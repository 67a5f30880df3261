import { setTimeout as wait } from 'node:timers/promises';

const TIMEOUT_MS = 60_000;
/** Attempts for faults with a random outcome. */
const TRIES = 10;

/** The result or the error of a call, shortened; `stuck` after the timeout. */
async function responseOf(work) {
  const timer = new AbortController();
  try {
    const answer = work().then(
      (text) => String(text),
      (error) => `refused: ${error?.code ?? error?.name}: ${error?.message ?? error}`,
    );
    const stuck = wait(TIMEOUT_MS, 'stuck', { signal: timer.signal }).catch(() => 'stuck');
    return shortened(await Promise.race([answer, stuck]));
  } finally {
    timer.abort();
  }
}

const shortened = (text) => (text.length > 110 ? `${text.slice(0, 109)}…` : text).replaceAll(/\s+/g, ' ').trim();
const times = (count) => ['did not run', 'ran once', 'ran TWICE'][count] ?? `ran ${count} times`;

/** Tries each fault: how often the effect happened, and the response. */
export async function faults(system, context) {
  const { effects } = context;
  const ran = async (run) => times((await effects.of(run)).length);
  const after = async (run, work) => {
    const response = await responseOf(work);
    return { ran: await ran(run), response };
  };
  const started = async (run) => {
    await system.start(run);
    return run;
  };
  const results = {};
  for (const moment of ['before', 'after']) {
    const run = `victim-${moment}`;
    const response = await responseOf(() => system.recover(run));
    // The decision is lost: the person decides again.
    const second = response === 'waits' ? await responseOf(() => system.decide(run, { approve: true })) : undefined;
    results[`killed ${moment} the effect`] = {
      ran: `${second === undefined ? 'decision kept' : 'decision LOST'}, ${await ran(run)}`,
      response: second === undefined ? response : `waits / decided again: ${second}`,
    };
  }
  {
    const run = await started('twice');
    const answers = await Promise.all([1, 2].map(() => responseOf(() => system.decide(run, { approve: true }))));
    results['the same decision twice at once'] = { ran: await ran(run), response: answers.join(' / ') };
  }
  {
    let [count, split, response] = [0, 0, ''];
    for (let at = 0; at < TRIES; at++) {
      const run = await started(`both-${at}`);
      const answers = await Promise.all(
        [true, false].map((approve) => responseOf(() => system.decide(run, { approve }))),
      );
      count += (await effects.of(run)).length;
      if (answers[0] !== answers[1] && !answers.some((answer) => answer.startsWith('refused'))) split += 1;
      response = answers.join(' / ');
    }
    const both = split === 0 ? '' : `; both decisions were accepted ${split} times`;
    results['approve and reject at once'] = { ran: `ran ${count} times of ${TRIES}${both}`, response };
  }
  if (system.noEdit) results['an edit of the wrong type'] = { ran: 'has no edit', response: '' };
  else {
    const run = await started('edited');
    const edited = await after(run, () => system.decide(run, { approve: true, amount: 'seven' }));
    const [amount = ''] = await effects.of(run);
    const second = amount === '' ? await responseOf(() => system.decide(run, { approve: true, amount: 7 })) : '';
    const amounts = (await effects.of(run)).join();
    results['an edit of the wrong type'] = {
      ran: amounts === '' ? 'did not run, nor after a second, right edit' : `ran with ${amounts}`,
      response: second === '' ? edited.response : `${edited.response} / then ${second}`,
    };
  }
  {
    const response = await responseOf(() => system.decide('nobody-knows', { approve: true }));
    results['a decision of an unknown id'] = { ran: response.startsWith('refused') ? 'refused' : 'accepted', response };
  }
  if (system.noTamper) results['the stored amount is changed from 42 to 9999'] = { ran: '', response: system.noTamper };
  else {
    const run = await started('tampered');
    await system.tamper(run);
    const restarted = await restart(context);
    const { response } = await after(run, () => restarted.decide(run, { approve: true }));
    const [amount = 'nothing'] = await effects.of(run);
    results['the stored amount is changed from 42 to 9999'] = { ran: `paid ${amount}`, response };
  }
  if (system.startExpiring) {
    const expired = await responseOf(() => system.startExpiring('expired'));
    const lateDecision = await after('expired', () => system.decide('expired', { approve: true }));
    results['nobody decides in time, then somebody does'] = {
      ran: lateDecision.ran,
      response: `${expired} / late: ${lateDecision.response}`,
    };
  } else results['nobody decides in time, then somebody does'] = { ran: 'has no expiry', response: '' };
  if (system.noRename)
    results['a parameter is renamed while it waits'] = { ran: 'not tried', response: system.noRename };
  else {
    const run = await started('renamed');
    // Only the redeployed process remains.
    await system.close();
    const renamed = await restart(context, { renamed: true });
    const { response } = await after(run, () => renamed.decide(run, { approve: true }));
    const [amount = 'nothing'] = await effects.of(run);
    results['a parameter is renamed while it waits'] = { ran: `paid ${amount}`, response };
  }
  return results;
}

/** Opens the system again as a redeployed process would: only the stored state remains. */
async function restart(context, more = {}) {
  return context.contender.open({ ...context, ...more, isRestart: true });
}
