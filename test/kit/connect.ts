// Connects in a separate process and prints the result: `node connect.ts <dialect> <url>`.
import type { Dialect } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';

const [name = '', url = ''] = process.argv.slice(2);
const dialect = (await import(`../../plugins/dialects/${name}/dialect.ts`))[name] as Dialect;
try {
  const connection = await dialect.connect(url, {});
  console.log('connected');
  await connection.close();
} catch (error) {
  console.log(isSvcError(error) ? `${error.code} ${error.message} ${error.why}` : String(error));
}
