import { functionName } from './aggregate-statement.ts';
import { ofExtension } from './catalog-rows.ts';
import { modelName, printedName } from './namespaces.ts';

const CAST_NAME = "format_type(k.castsource, NULL) || ' AS ' || format_type(k.casttarget, NULL)";

/** SQL for whether something is neither part of the server nor of an extension. */
export const isMade = (catalog: string, oid: string): string => `${oid} >= 16384 AND NOT ${ofExtension(catalog, oid)}`;

/** SQL for whether a cast `k` belongs to a schema of `ns`: it is of one of its types or calls one of its functions. */
export const IS_CAST_OF =
  '(EXISTS (SELECT FROM pg_type t JOIN ns ON ns.oid = t.typnamespace WHERE t.oid IN (k.castsource, k.casttarget)) OR EXISTS (SELECT FROM pg_proc f JOIN ns ON ns.oid = f.pronamespace WHERE f.oid = k.castfunc))';

/** SQL for a quoted name, with its schema unless the name alone means it. */
export const isVisibleName = (isVisible: string, ns: string, name: string): string =>
  `CASE WHEN ${isVisible} THEN '' ELSE quote_ident((SELECT n.nspname FROM pg_namespace n WHERE n.oid = ${ns})) || '.' END || quote_ident(${name})`;

/** Rows of `made`. A cast is in no schema. */
export const CASTS_AND_TEXT_SEARCH = `SELECT 'cast', ${CAST_NAME}, 'CREATE CAST (' || ${CAST_NAME} || ')'
  || CASE k.castmethod WHEN 'f' THEN ' WITH FUNCTION ' || ${functionName('k.castfunc')} || '(' || pg_get_function_identity_arguments(k.castfunc) || ')' WHEN 'i' THEN ' WITH INOUT' ELSE ' WITHOUT FUNCTION' END
  || CASE k.castcontext WHEN 'a' THEN ' AS ASSIGNMENT' WHEN 'i' THEN ' AS IMPLICIT' ELSE '' END,
  'CAST (' || ${CAST_NAME} || ')', obj_description(k.oid, 'pg_cast'), 'pg_cast'::regclass, k.oid
FROM pg_cast k WHERE ${isMade('pg_cast', 'k.oid')} AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_cast'::regclass AND d.objid = k.oid AND d.deptype = 'i') AND ${IS_CAST_OF}
UNION ALL SELECT 'text_search_dictionary', ${modelName('d.dictname')}, 'CREATE TEXT SEARCH DICTIONARY ' || ${printedName('d.dictname')} || E' (\\n  TEMPLATE = ' || ${isVisibleName('pg_ts_template_is_visible(m.oid)', 'm.tmplnamespace', 'm.tmplname')}
  || COALESCE(E',\\n  ' || d.dictinitoption, '') || E'\\n)', 'TEXT SEARCH DICTIONARY ' || ${printedName('d.dictname')}, obj_description(d.oid, 'pg_ts_dict'), 'pg_ts_dict'::regclass, d.oid
FROM pg_ts_dict d JOIN ns ON ns.oid = d.dictnamespace JOIN pg_ts_template m ON m.oid = d.dicttemplate WHERE ${isMade('pg_ts_dict', 'd.oid')}
UNION ALL SELECT 'text_search_configuration', ${modelName('g.cfgname')}, 'CREATE TEXT SEARCH CONFIGURATION ' || ${printedName('g.cfgname')} || ' (PARSER = ' || ${isVisibleName('pg_ts_parser_is_visible(s.oid)', 's.prsnamespace', 's.prsname')} || ')'
  || COALESCE((SELECT string_agg(E';\\n\\nALTER TEXT SEARCH CONFIGURATION ' || ${printedName('g.cfgname')} || ' ADD MAPPING FOR ' || quote_ident(y.alias) || ' WITH ' || w.dictionaries, '' ORDER BY y.tokid)
    FROM (SELECT maptokentype, string_agg(mapdict::regdictionary::text, ', ' ORDER BY mapseqno) AS dictionaries FROM pg_ts_config_map WHERE mapcfg = g.oid GROUP BY maptokentype) w
    JOIN ts_token_type(g.cfgparser) y ON y.tokid = w.maptokentype), ''),
  'TEXT SEARCH CONFIGURATION ' || ${printedName('g.cfgname')}, obj_description(g.oid, 'pg_ts_config'), 'pg_ts_config'::regclass, g.oid
FROM pg_ts_config g JOIN ns ON ns.oid = g.cfgnamespace JOIN pg_ts_parser s ON s.oid = g.cfgparser WHERE ${isMade('pg_ts_config', 'g.oid')}`;
