const SECRET_PARAMETERS = /([?&](?:password|pass|pwd|token|secret|sslpassword|authtoken)=)[^&#]*/gi;

/** A URL as it may be printed: whatever stands between the user's name and the host is gone. */
export function withoutPassword(url: string): string {
  return url
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)([^/?#]*)@/i, (_, scheme: string, credentials: string) => {
      const user = credentials.split(':', 1)[0] ?? '';
      return `${scheme}${user}${credentials.includes(':') ? ':***' : ''}@`;
    })
    .replace(SECRET_PARAMETERS, '$1***');
}
