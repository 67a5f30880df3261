import manifest from '../package.json' with { type: 'json' };

/** Version of this SDK, as package.json says it. */
export const version: string = manifest.version;
