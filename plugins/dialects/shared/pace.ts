import { setTimeout as sleep } from 'node:timers/promises';

/** Others get this share of the time of each batch. */
const REST = 0.25;

/** After a batch that wrote rows: the server is free for others for a while, longer where the batch was slow. */
export const restAfter = (batchMs: number): Promise<void> => sleep(batchMs * REST);
