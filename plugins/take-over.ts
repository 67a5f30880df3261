/** What to do where a table that is to be created is there: its rows may be all that somebody has, so keeping it comes first. */
export const TAKE_OVER: readonly string[] = [
  'Take over what is there: svc db schema pull, then svc db migrate baseline',
  'Where pull wrote this migration: svc db migrate baseline',
  'Or use another name, or drop what is there.',
];
