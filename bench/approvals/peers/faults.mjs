import { setTimeout as wait } from 'node:timers/promises';

const PATIENCE_MS = 60_000;
/** Of what may end one way or the other. */
const TRIES = 10;

/** What a call gave, or what it threw, in a few words; nobody waits for ever for one that is stuck. */
async function said(work) {
  const late = new AbortController();
  try {
    const answer = work().then(
      (text) => String(text),
      (error) => `refused: ${error?.code ?? error?.name}: ${error?.message ?? error}`,
    );
    const stuck = wait(PATIENCE_MS, 'stuck', { signal: late.signal }).catch(() => 'stuck');
    return shortened(await Promise.race([answer, stuck]));
  } finally {
    late.abort();
  }
}

const shortened = (text) => (text.length > 110 ? `${text.slice(0, 109)}…` : text).replaceAll(/\s+/g, ' ').trim();
const times = (count) => ['did not run', 'ran once', 'ran TWICE'][count] ?? `ran ${count} times`;

/** Each fault, tried on what `place` holds: how often the effect happened, and what was told. */
export async function faults(system, place) {
  const { effects } = place;
  const ran = async (run) => times((await effects.of(run)).length);
  const after = async (run, work) => {
    const told = await said(work);
    return { ran: await ran(run), told };
  };
  const started = async (run) => {
    await system.start(run);
    return run;
  };
  const found = {};
  for (const moment of ['before', 'after']) {
    const run = `victim-${moment}`;
    const told = await said(() => system.recover(run));
    // The decision is lost: the human is asked once more, and says the same.
    const then = told === 'waits' ? await said(() => system.decide(run, { approve: true })) : undefined;
    found[`killed ${moment} the effect`] = {
      ran: `${then === undefined ? 'decision kept' : 'decision LOST'}, ${await ran(run)}`,
      told: then === undefined ? told : `waits / asked again: ${then}`,
    };
  }
  {
    const run = await started('twice');
    const answers = await Promise.all([1, 2].map(() => said(() => system.decide(run, { approve: true }))));
    found['the same decision twice at once'] = { ran: await ran(run), told: answers.join(' / ') };
  }
  {
    let [count, split, told] = [0, 0, ''];
    for (let at = 0; at < TRIES; at++) {
      const run = await started(`both-${at}`);
      const answers = await Promise.all([true, false].map((approve) => said(() => system.decide(run, { approve }))));
      count += (await effects.of(run)).length;
      if (answers[0] !== answers[1] && !answers.some((answer) => answer.startsWith('refused'))) split += 1;
      told = answers.join(' / ');
    }
    const both = split === 0 ? '' : `; both were told that theirs holds ${split} times`;
    found['approve and reject at once'] = { ran: `ran ${count} times of ${TRIES}${both}`, told };
  }
  if (system.noEdit) found['an edit of the wrong type'] = { ran: 'has no edit', told: '' };
  else {
    const run = await started('edited');
    const edited = await after(run, () => system.decide(run, { approve: true, amount: 'seven' }));
    const [amount = ''] = await effects.of(run);
    const then = amount === '' ? await said(() => system.decide(run, { approve: true, amount: 7 })) : '';
    const amounts = (await effects.of(run)).join();
    found['an edit of the wrong type'] = {
      ran: amounts === '' ? 'did not run, nor after a second, right edit' : `ran with ${amounts}`,
      told: then === '' ? edited.told : `${edited.told} / then ${then}`,
    };
  }
  {
    const told = await said(() => system.decide('nobody-knows', { approve: true }));
    found['a decision of an unknown id'] = { ran: told.startsWith('refused') ? 'refused' : 'told ok', told };
  }
  if (system.noTamper) found['the stored amount is changed from 42 to 9999'] = { ran: '', told: system.noTamper };
  else {
    const run = await started('tampered');
    await system.tamper(run);
    const restarted = await again(place);
    const { told } = await after(run, () => restarted.decide(run, { approve: true }));
    const [amount = 'nothing'] = await effects.of(run);
    found['the stored amount is changed from 42 to 9999'] = { ran: `paid ${amount}`, told };
  }
  if (system.startExpiring) {
    const expired = await said(() => system.startExpiring('expired'));
    const late = await after('expired', () => system.decide('expired', { approve: true }));
    found['nobody decides in time, then somebody does'] = { ran: late.ran, told: `${expired} / late: ${late.told}` };
  } else found['nobody decides in time, then somebody does'] = { ran: 'has no expiry', told: '' };
  if (system.noRename) found['a parameter is renamed while it waits'] = { ran: 'not tried', told: system.noRename };
  else {
    const run = await started('renamed');
    // Only the redeployed process is left.
    await system.close();
    const renamed = await again(place, { renamed: true });
    const { told } = await after(run, () => renamed.decide(run, { approve: true }));
    const [amount = 'nothing'] = await effects.of(run);
    found['a parameter is renamed while it waits'] = { ran: `paid ${amount}`, told };
  }
  return found;
}

/** The same system once more, as a redeployed process has it: nothing is known but what is stored. */
async function again(place, more = {}) {
  return place.contender.open({ ...place, ...more, again: true });
}
