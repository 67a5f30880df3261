const SECRET_PARAMETERS = /([?&](?:password|pass|pwd|token|secret|sslpassword|authtoken)=)[^&#]*/gi;
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

/**
 * A URL as it may be printed: whatever stands between the user's name and the host is gone. A password that was not
 * escaped may hold any character, so it ends at the last `@`.
 */
export function withoutPassword(url: string): string {
  const scheme = SCHEME.exec(url)?.[0] ?? '';
  const rest = url.slice(scheme.length);
  const host = rest.lastIndexOf('@');
  const [user, ...password] = rest.slice(0, Math.max(host, 0)).split(':');
  const hidden = host < 0 ? rest : `${user}${password.length > 0 ? ':***' : ''}${rest.slice(host)}`;
  return `${scheme}${hidden}`.replace(SECRET_PARAMETERS, '$1***');
}
