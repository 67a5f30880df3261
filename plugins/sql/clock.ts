/** `10:30` and `10:30:00.500` as the catalog may write them, each in the one form that a default has: seconds always, no zeros behind. */
export function clock(text: string): string {
  const [, minutes = '', seconds = '00', fraction = ''] = /^(\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?$/.exec(text) ?? [];
  const rest = fraction.replace(/0+$/, '');
  return minutes === '' ? text : `${minutes}:${seconds}${rest === '' ? '' : `.${rest}`}`;
}

/** A day and the clock of it, without a zone; a day alone begins at midnight. */
export function wallClock(text: string): string {
  const [day = '', time = '00:00'] = text.split(/[ T]/);
  return `${day}T${clock(time)}`;
}

/** A moment in UTC, which is what one without a zone is in: catalogs tell it in that of the session. */
export function moment(text: string): string {
  const zoned = /(Z|[+-]\d\d(:?\d\d)?)$/.test(text.slice(10)) ? text : `${text}Z`;
  const at = new Date(zoned.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00'));
  return Number.isNaN(at.getTime()) ? text : `${wallClock(at.toISOString().slice(0, -1))}Z`;
}
