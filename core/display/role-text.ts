/** `2 of finance, 1 of ops` */
export function roleText(roles: readonly { readonly role: string; readonly count: number }[]): string {
  return roles.map(({ role, count }) => `${count} of ${role}`).join(', ');
}
