"""Files of one format each, behind one protocol: `tables.TableFile`; `opening` chooses by bytes."""
