import { fileURLToPath } from 'node:url';

/** How every call of Docker begins that concerns our services. */
export const COMPOSE = ['compose', '--file', fileURLToPath(new URL('compose.yaml', import.meta.url))] as const;
