"""Tools that know nothing of messages: safe writing of files, arithmetic of rates, the cache of compiled functions."""
