// Calls db.schema.create argv[2] times; prints the milliseconds of each tenth of the calls as JSON.
import { Svc } from '@svc/sdk';

const count = Number(process.argv[2]);
const svc = new Svc({ product: 'bench', env: 'dev' });
const db = await svc.database.connect({ database: 'main' });
const tenths = [];
for (let tenth = 0; tenth < 10; tenth++) {
  const started = performance.now();
  for (let call = 0; call < count / 10; call++) {
    await db.schema.create(`c_${tenth}_${call}`, {
      id: { type: 'integer', primaryKey: true, autoGenerate: true },
      name: { type: 'string', length: 255, required: true },
    });
  }
  tenths.push(performance.now() - started);
}
await svc.close();
console.log(JSON.stringify(tenths));
